"""A stack in an account of AWS, tried from outside: deployed, pushed to, moved, alarmed, destroyed, reported."""
