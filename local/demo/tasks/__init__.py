"""Three uses of tasks, each to be run by itself: `python -m local.demo.tasks enrol`, `import` or `export`."""
