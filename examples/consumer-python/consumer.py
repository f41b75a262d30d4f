"""Balances from the JSON lines of `ourotail tail`, forks included.

    ourotail drill -- python3 examples/consumer-python/consumer.py

It keeps no cursor: when it is started again it is given every line again.
"""
import json, sys

outputs = {}  # reference -> [address, lovelace, slot created, slot spent or None]
for text in sys.stdin:
    line = json.loads(text)
    slot = line["point"]["slot"] if "point" in line and line["event"] != "seed" else -1
    if line["event"] == "undo":  # take back what lies above the point
        outputs = {ref: [address, coins, created, spent if spent is None or spent <= slot else None]
                   for ref, (address, coins, created, spent) in outputs.items() if created <= slot}
        continue
    out = line["record"]["output"]
    ref = out["transaction_id"], out["output_index"]
    if line["record"]["kind"] == "created":
        outputs[ref] = [out["address"], int(out["value"]["coins"]), slot, None]
    else:
        outputs[ref][3] = slot

balances = {}
for address, coins, _, spent in outputs.values():
    if spent is None:
        balances[address] = balances.get(address, 0) + coins
for address, coins in balances.items():
    print(address, coins)
