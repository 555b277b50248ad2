"""Valid files, of which others are made."""

import json

OFFERS = """label,gpu,gpus,usd_per_hour,region,market,count,as_of
rack 1,H100,8,16.5,cellar,on-demand,4,2026-11-01
rack 2,T4,1,0.3,attic,spot,2,
"""
QUOTAS = """provider,family,market,region,unit,amount
aws,"All P5 Spot Instance Requests",spot,us-east-2,vcpu,192
gcp,NVIDIA H100 GPUs,any,,gpu,8
"""
QUOTAS_YAML = """quotas:
- {provider: aws, family: P5, market: spot, region: us-east-2, unit: vcpu, amount: 192}
- {provider: gcp, family: NVIDIA H100 GPUs, amount: 8}
"""
SETTINGS = """providers = ["aws", "gcp"]
confidence = "90%"
discount = {aws = "10%"}
max_machines = 8
"""
TRACE = """series,t_s,event,value,provider,zone,gpu,gpus,capacity,kind,start,step_s
a,0,machines,2,gcp,us-central1-a,H100,8,4,probe,2026-01-01T00:00:00Z,60
a,3600,machines,0,,,,,,,,
a,7200,machines,4,,,,,,,,
a,90000,end,,,,,,,,,
"""
AWS_PRICES = json.dumps({"SpotPriceHistory": [
    {"AvailabilityZone": "us-east-1a", "InstanceType": "p5.48xlarge", "SpotPrice": f"{20 + n}",
     "ProductDescription": "Linux/UNIX", "Timestamp": f"2026-01-0{n}T00:00:00+00:00"}
    for n in range(1, 9)
]})  # fmt: skip
TIMINGS = """instance,machines,batch,step_s
p3.2xlarge,1,64,0.35
p3.2xlarge,4,256,0.61
"""
PROGRESS = json.dumps({
    "schema": "recommend.progress.v1", "step": 400, "total_steps": 1000, "done_share": 0.4,
    "checkpoint": "step-400", "began_at": "2026-11-20T03:00:00+00:00",
    "at": "2026-11-20T12:00:00+00:00", "elapsed_s": 32400.0, "uptime_s": 30000.0,
    "interruptions": 2, "interval_s": 600.0, "spent_usd": 61.0,
})  # fmt: skip
NETWORK = json.dumps({
    "model_type": "llama", "vocab_size": 32000, "hidden_size": 4096, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
    "max_position_embeddings": 8192, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
})  # fmt: skip
LAWS = json.dumps({"schema": "recommend.spot-laws/v2", "laws": [
    {"provider": "gcp", "place": "us-central1", "machine": "a3-highgpu-8g", "run_mean_s": 7200.0,
     "run_sigma": 1.5, "outage_sigma": 1.2, "availability": 0.7, "zone_sd": None,
     "availability_slope": None, "co_interruption": 0.9, "short_runs": None, "held": False,
     "trace": "zone a", "seen": "2026-03-01 to 2026-03-15", "hours": 336.0, "interruptions": 40,
     "fitted": "2026-03-16"}]})  # fmt: skip
PRINTED_QUOTAS = (
    {"Quotas": [{"QuotaArn": "arn:aws:servicequotas:eu-west-1:1:ec2/L-417A185B", "Value": 192.0,
                 "QuotaCode": "L-417A185B", "QuotaName": "Running On-Demand P instances"}]},
    [{"kind": "compute#region", "name": "us-central1", "quotas": [
        {"metric": "NVIDIA_A100_GPUS", "limit": 16.0, "usage": 10.0}]},
     {"kind": "compute#project", "name": "p", "quotas": [
         {"metric": "GPUS_ALL_REGIONS", "limit": 1.0, "usage": 0.0}]}],
    [{"currentValue": 0, "limit": "96", "localName": "Standard NCADS_A100_v4 Family vCPUs"}],
)  # fmt: skip
