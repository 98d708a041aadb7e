"""The public Python functions and the objects they return."""
