"""Pictures of schedules and graphs."""
