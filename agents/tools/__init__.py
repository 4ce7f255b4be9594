"""What the model can call: tools over files, processes, the web, people and other agents."""
