//! Loads the CUDA driver library at run time, so that programs using it start on machines without one.
