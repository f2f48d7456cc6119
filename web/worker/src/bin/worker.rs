//! The engine on the CPU, inside a browser's worker; `web/static/engine-worker.js` is its other half.

fn main() {
    #[cfg(target_arch = "wasm32")]
    cwm_worker::browser::start();
}
