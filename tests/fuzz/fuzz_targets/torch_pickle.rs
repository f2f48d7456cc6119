#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cwm_tests::fuzz_bodies::torch_pickle(bytes));
