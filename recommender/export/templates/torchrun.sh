#: script
#!/usr/bin/env bash
@HEAD@

export NNODES=${NNODES:-@NODES@}
export NODE_RANK=${NODE_RANK:-0}  # 0 on the first machine, then 1, 2, ...
export MASTER_ADDR=${MASTER_ADDR:-localhost}  # address of the first machine
GPUS_PER_NODE=${GPUS_PER_NODE:-$(nvidia-smi -L | wc -l)}
@VARIABLES@

@RUN@
