# Sourced with the path of an experiment config: puts the task's directory into it and makes the folders of the run.
sed -i "s|AZ_BATCH_TASK_WORKING_DIR|$AZ_BATCH_TASK_WORKING_DIR|g" "$1" &&
    mkdir -p "$AZ_BATCH_TASK_WORKING_DIR/masks" "$AZ_BATCH_TASK_WORKING_DIR/images" &&
    export TORCH_HOME="$AZ_BATCH_TASK_WORKING_DIR/.torch" MPLCONFIGDIR="$AZ_BATCH_TASK_WORKING_DIR/.matplotlib"
