"""What looking for cycles costs the program that is watched."""
