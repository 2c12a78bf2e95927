"""The command `lowkiq`: its commands' own tests are beside what they run."""
