"""Who may see the dashboard, and who may change anything: nobody, until it is shown who they are."""
