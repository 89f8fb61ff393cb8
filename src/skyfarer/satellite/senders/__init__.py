"""Ways out: each hands a batch to one kind of upstream. Retrying and dropping is not theirs."""
