# module torch.profiler.python_tracer: profiles of weft have no events of Python functions
