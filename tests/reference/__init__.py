"""The reference is right, the tolerance lets good float32 arithmetic pass and planted faults not. CPU."""
