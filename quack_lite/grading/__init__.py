"""Grading: gates, feedback, progress, the spawned grader, and the proofs that the gates hold."""
