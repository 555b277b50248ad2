"""What time is worth: the cheapest plan under three deadlines, with and without spot."""

from recommender import Choice, Limits, recommend

for hours in (3, 12, 48):
    limits = Limits(deadline_s=hours * 3600)
    for market in ("any", "on_demand"):
        answer = recommend("resnet50-imagenet", limits, Choice(market=market), top=1)
        if not answer.plans:
            print(f"{hours:3} h  {market:10} no plan meets it")
            continue
        plan = answer.plans[0]
        name = f"{plan.machines[0].count}x {plan.machines[0].instance_type}"
        print(f"{hours:3} h  {market:10} {plan.estimate.cost.mean:6.0f} USD  {name}")
