//! A [`Host`] in JavaScript: the object `host` that the worker's script puts into the global scope.

use std::{cell::OnceCell, io, rc::Rc};

#[cfg(feature = "webgpu")]
use cwm_protocol::Phase;
use cwm_protocol::{Fault, Reply, Say, code};
use js_sys::{Array, Uint8Array};
use wasm_bindgen::prelude::*;

use crate::{Engine, Host, InputFile};

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = host, js_name = say)]
    fn host_say(text: &str);
    #[wasm_bindgen(js_namespace = host, js_name = now)]
    fn host_now() -> f64;
    #[wasm_bindgen(js_namespace = host, js_name = pause)]
    async fn host_pause();
    #[wasm_bindgen(js_namespace = host, js_name = fetch, catch)]
    async fn host_fetch(
        path: &str,
        progress: &Closure<dyn FnMut(f64, Option<f64>)>,
    ) -> Result<JsValue, JsValue>;
    #[wasm_bindgen(js_namespace = host, js_name = size)]
    fn host_size(file: &JsValue) -> f64;
    #[wasm_bindgen(js_namespace = host, js_name = read, catch)]
    fn host_read(file: &JsValue, at: f64, buffer: &mut [u8]) -> Result<f64, JsValue>;
}

/// The worker that this runs in.
#[derive(Clone, Copy)]
struct Browser;

/// What JavaScript says of an error.
fn message_of(error: &JsValue) -> String {
    match error.dyn_ref::<js_sys::Error>() {
        Some(error) => String::from(error.message()),
        None => error.as_string().unwrap_or_else(|| "unknown error".to_string()),
    }
}

impl Host for Browser {
    fn say(&self, id: u32, say: Say) {
        // Replies hold no map with other keys than strings, so they always serialise.
        host_say(&serde_json::to_string(&Reply { id, say }).unwrap_or_default());
    }

    fn now_millis(&self) -> f64 {
        host_now()
    }

    async fn pause(&self) {
        host_pause().await;
    }

    async fn fetch(
        &self,
        path: &str,
        progress: impl Fn(u64, Option<u64>) + 'static,
    ) -> Result<Vec<u8>, Fault> {
        let progress = Closure::new(move |done: f64, total: Option<f64>| {
            progress(done as u64, total.map(|total| total as u64));
        });
        match host_fetch(path, &progress).await {
            Ok(bytes) => Ok(Uint8Array::new(&bytes).to_vec()),
            Err(error) => {
                let message = format!("cannot fetch `{path}`: {}", message_of(&error));
                Err(Fault::new(code::FETCH, message, "look at the connection, and try again"))
            }
        }
    }
}

/// A `File`, `Blob` or `ArrayBuffer`.
struct Attached(JsValue);

impl InputFile for Attached {
    fn size_bytes(&self) -> u64 {
        host_size(&self.0) as u64
    }

    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let read = host_read(&self.0, at as f64, buffer);
        read.map(|n| n as usize).map_err(|error| io::Error::other(message_of(&error)))
    }
}

thread_local! {
    static ENGINE: OnceCell<Rc<Engine<Browser>>> = const { OnceCell::new() };
}

/// Starts the engine on the CPU; its first words are `ready`.
pub fn start() {
    speak_when_panicking();
    keep(Engine::new(Browser));
}

/// Starts the engine on the GPU: `ready`, or a `notice` that there is none.
#[cfg(feature = "webgpu")]
pub fn start_on_gpu() {
    speak_when_panicking();
    wasm_bindgen_futures::spawn_local(async {
        Browser.say(0, Say::Phase { phase: Phase::OpeningGpu, done: 0, total: None });
        match crate::gpu::Gpu::open().await {
            Ok(gpu) => keep(Engine::with_gpu(Browser, gpu)),
            Err(fault) => Browser.say(0, Say::Failed { fault }),
        }
    });
}

/// Greets, and keeps the engine for the messages to come.
fn keep(engine: Engine<Browser>) {
    engine.greet();
    ENGINE.with(|cell| {
        // A worker starts once.
        let _ = cell.set(Rc::new(engine));
    });
}

fn speak_when_panicking() {
    std::panic::set_hook(Box::new(|panic| {
        console_error_panic_hook::hook(panic);
        let hint = "restart the engine; the game on screen stays";
        let fault = Fault::new(code::PANIC, format!("the engine crashed: {panic}"), hint);
        Browser.say(0, Say::Failed { fault });
    }));
}

/// Hears one message of the main thread.
#[wasm_bindgen]
pub fn hear(text: String, files: Array) {
    let files = files.iter().map(|file| Box::new(Attached(file)) as Box<dyn InputFile>).collect();
    if let Some(engine) = ENGINE.with(|cell| cell.get().cloned()) {
        wasm_bindgen_futures::spawn_local(async move { engine.hear(&text, files).await });
    }
}
