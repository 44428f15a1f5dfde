"""What runs, scenarios, cities and theory say, in tables and sentences for a terminal."""
