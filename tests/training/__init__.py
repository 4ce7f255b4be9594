"""How the weights of `agents/policy/stagnation.json` are learnt: see `train.py`."""
