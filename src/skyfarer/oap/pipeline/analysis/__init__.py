"""What the decoded records mean, as DataFrame operations that run in the JVM."""
