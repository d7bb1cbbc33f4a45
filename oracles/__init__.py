"""The truth, exact values and allowed errors: imports nothing of src/, and torch only to read tensors."""
