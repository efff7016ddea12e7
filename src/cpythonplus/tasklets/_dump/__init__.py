"""Reports of what every tasklet does, also on a signal."""
