//! The session for scripts: JSON in, JSON out.

use wasm_bindgen::prelude::wasm_bindgen;

use crate::{
    message::{Command, Lane},
    session::Session,
};

/// The session of this page.
#[wasm_bindgen]
#[derive(Default)]
pub struct App(Session);

#[wasm_bindgen]
impl App {
    /// A new session.
    #[wasm_bindgen(constructor)]
    #[allow(clippy::new_without_default, reason = "scripts know no Default")]
    pub fn new() -> App {
        console_error_panic_hook::set_once();
        App::default()
    }

    /// Carries out a command and returns the effects.
    pub fn command(&mut self, command: &str) -> Result<String, String> {
        let command: Command = serde_json::from_str(command).map_err(|error| error.to_string())?;
        serde_json::to_string(&self.0.command(command)).map_err(|error| error.to_string())
    }

    /// Takes what a worker says and returns the effects.
    pub fn hear(&mut self, lane: &str, reply: &str) -> Result<String, String> {
        let lane = Lane::ALL.into_iter().find(|known| {
            serde_json::to_string(known).is_ok_and(|name| name.trim_matches('"') == lane)
        });
        let lane = lane.ok_or_else(|| "no such worker".to_string())?;
        serde_json::to_string(&self.0.hear(lane, reply)).map_err(|error| error.to_string())
    }

    /// What is on screen; the moves and the results only if they changed since these revisions.
    pub fn view(&self, line: u32, result: u32) -> Result<String, String> {
        serde_json::to_string(&self.0.view(line, result)).map_err(|error| error.to_string())
    }

    /// The keys that mean something outside of inputs, as `KeyboardEvent.key` names them.
    pub fn keys() -> Vec<String> {
        let keys = crate::keys::TABLE.iter().flat_map(|binding| binding.keys);
        keys.map(|key| (*key).to_string()).collect()
    }

    /// The version of cwm.
    pub fn version() -> String {
        crate::VERSION.to_string()
    }
}
