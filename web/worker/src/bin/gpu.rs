//! The engine on the GPU, inside a browser's worker; `web/static/gpu-worker.js` is its other half.

fn main() {
    #[cfg(target_arch = "wasm32")]
    cwm_worker::browser::start_on_gpu();
}
