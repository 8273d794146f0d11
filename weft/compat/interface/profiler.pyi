# module torch.profiler.python_tracer: profiles of weft hold the ranges of record_function only
