"""From a training job and limits to ranked plans of cloud GPU machines."""
