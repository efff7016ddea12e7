"""What every tasklet does: reports, and reports on a signal."""
