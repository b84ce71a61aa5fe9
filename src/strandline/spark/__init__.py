"""The JVM: the session and its settings with their reasons, the jars, the class-data archive."""
