"""One pass of a workload under a strategy: every measurement and every proof is one of these."""
