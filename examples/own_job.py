"""Plans for a job of one's own, written as in a job file, with a budget and one cloud."""

from recommender import Choice, Limits, job_from_text, recommend

JOB = """
schema: recommend.job/v1
name: my-model
family: decoder             # a language model; all that is not said is derived
params: 3B
seq_len: 4096
tokens: 2B
batch: 512k tokens
measured: ["8xA100: 9.2 s/step"]    # one timed step makes the spans narrower
data: {at: aws:us-east-1, gib: 20}
"""

job = job_from_text(JOB)
answer = recommend(
    job,
    Limits(budget_usd=400, confidence=0.9),
    Choice(providers=("aws",), market="on_demand"),
)
print(f"{job.name}: {job.total_flop:.2g} FLOP; derived: {', '.join(job.assumed)}")
if answer.infeasible:
    print(*answer.infeasible.binding, sep="\n")
for plan in answer.plans[:3]:
    machines = plan.machines[0]
    time = f"{plan.estimate.time.p50 / 3600:.1f} h"
    print(f"{machines.count}x {machines.instance_type}: {time}, {plan.estimate.cost.mean:.0f} USD")
