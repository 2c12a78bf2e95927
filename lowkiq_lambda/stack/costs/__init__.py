"""What a month costs on AWS."""
