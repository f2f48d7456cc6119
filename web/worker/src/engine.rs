//! The engine: hears requests, and answers each with passing replies and one last one.

use std::{
    cell::{Cell, RefCell},
    collections::HashSet,
    rc::Rc,
};

use cwm_core::chess::MoveToken;
use cwm_protocol::{
    Ask, Backend, BackendKind, CheckpointSource, Fault, GradeJob, ModelFacts, Phase, Request, Say,
    code,
};

use crate::{
    checkpoint::{self, OpenModel, Wanted},
    faults,
    grade::Run,
    host::{Host, InputFile},
    line::Line,
};

/// What a worker does. Requests may overlap: each is a task of its own, and tasks take turns where they pause.
pub struct Engine<H> {
    host: H,
    backend: Backend,
    #[cfg(feature = "webgpu")]
    gpu: Option<crate::gpu::Gpu>,
    model: RefCell<Option<Rc<OpenModel>>>,
    line: RefCell<Option<Line>>,
    /// The latest `predict`.
    predicting: Cell<u32>,
    /// Whether a `grade` is running.
    grading: Cell<bool>,
    /// Requests that run.
    running: RefCell<HashSet<u32>>,
    /// Running requests that are to end.
    cancelled: RefCell<HashSet<u32>>,
}

impl<H: Host> Engine<H> {
    /// An engine on the CPU.
    pub fn new(host: H) -> Self {
        Engine {
            host,
            backend: Backend { kind: BackendKind::Cpu, adapter: None, why: None },
            #[cfg(feature = "webgpu")]
            gpu: None,
            model: RefCell::default(),
            line: RefCell::default(),
            predicting: Cell::new(0),
            grading: Cell::new(false),
            running: RefCell::default(),
            cancelled: RefCell::default(),
        }
    }

    /// An engine that grades on the GPU, as long as that works.
    #[cfg(feature = "webgpu")]
    pub(crate) fn with_gpu(host: H, gpu: crate::gpu::Gpu) -> Self {
        let backend = Backend { kind: BackendKind::Webgpu, adapter: None, why: None };
        Engine { backend, gpu: Some(gpu), ..Self::new(host) }
    }

    /// Says that the engine is up.
    pub fn greet(&self) {
        let version = env!("CARGO_PKG_VERSION").to_string();
        self.host.say(0, Say::Ready { backend: self.backend.clone(), version });
    }

    /// Hears one request, a JSON text, with its files, and answers it.
    pub async fn hear(&self, text: &str, files: Vec<Box<dyn InputFile>>) {
        let request: Request = match serde_json::from_str(text) {
            Ok(request) => request,
            Err(error) => {
                let message = format!("a message that this engine does not know: {error}");
                let hint = "reload the page: its files are of different versions";
                let fault = Fault::new(code::REQUEST, message, hint);
                return self.host.say(id_of(text), Say::Failed { fault });
            }
        };
        let id = request.id;
        self.running.borrow_mut().insert(id);
        let answered = match request.ask {
            Ask::Open { name, source } => self.open(id, &name, source, files).await,
            Ask::Predict { tokens, from_step } => self.predict(id, &tokens, from_step).await,
            Ask::Grade(job) => self.grade(id, &job, files).await,
            Ask::Cancel { request } => {
                if self.running.borrow().contains(&request) {
                    self.cancelled.borrow_mut().insert(request);
                }
                Ok(Say::Cancelled)
            }
        };
        self.running.borrow_mut().remove(&id);
        self.cancelled.borrow_mut().remove(&id);
        self.host.say(id, answered.unwrap_or_else(|fault| Say::Failed { fault }));
    }

    fn is_cancelled(&self, id: u32) -> bool {
        self.cancelled.borrow().contains(&id)
    }

    async fn open(
        &self,
        id: u32,
        name: &str,
        source: CheckpointSource,
        files: Vec<Box<dyn InputFile>>,
    ) -> Result<Say, Fault> {
        let started = self.host.now_millis();
        let (path, (weights, config)) = match source {
            CheckpointSource::Shipped => ("built-in", self.fetch(id, name).await?),
            CheckpointSource::Files => (name, checkpoint::read_files(&files)?),
        };
        drop(files);
        let fetch_millis = self.host.now_millis() - started;
        self.host.say(id, Say::Phase { phase: Phase::Building, done: 0, total: None });
        self.host.pause().await;
        let gpu = Wanted {
            #[cfg(feature = "webgpu")]
            gpu: self.gpu.as_ref(),
            #[cfg(feature = "webgpu")]
            id,
            ..Wanted::default()
        };
        let built = checkpoint::build(&self.host, name, path, weights, config.as_deref(), gpu);
        let (model, facts) = built.await?;
        *self.line.borrow_mut() = None;
        *self.model.borrow_mut() = Some(Rc::new(model));
        let facts = ModelFacts { fetch_millis, ..facts };
        Ok(Say::Opened { facts: Box::new(facts) })
    }

    /// The weights and config of a shipped checkpoint.
    async fn fetch(&self, id: u32, name: &str) -> Result<(Vec<u8>, Option<String>), Fault> {
        if name.is_empty()
            || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        {
            let message = format!("there is no shipped checkpoint `{}`", name.escape_debug());
            return Err(Fault::new(code::FETCH, message, "choose one from the list"));
        }
        let config = self.host.fetch(&format!("models/{name}/config.json"), |_, _| ()).await?;
        let config = String::from_utf8(config).map_err(|_| {
            Fault::new(code::FETCH, "config.json is not UTF-8 text", "reload the page")
        })?;
        let voice = self.host.clone();
        let progress = move |done, total| {
            voice.say(id, Say::Phase { phase: Phase::Fetching, done, total });
        };
        let path = format!("models/{name}/model.safetensors");
        Ok((self.host.fetch(&path, progress).await?, Some(config)))
    }

    fn open_model(&self) -> Result<Rc<OpenModel>, Fault> {
        let model = self.model.borrow().clone();
        model.ok_or_else(|| Fault::new(code::NO_MODEL, "no checkpoint is open", "open one first"))
    }

    async fn predict(&self, id: u32, tokens: &[u16], from_step: u32) -> Result<Say, Fault> {
        let started = self.host.now_millis();
        self.predicting.set(id);
        let model = self.open_model()?;
        let mut line = vec![MoveToken::START];
        for &token in tokens {
            let token = MoveToken::new(u32::from(token)).ok().filter(|token| !token.is_special());
            line.push(token.ok_or_else(|| {
                Fault::new(code::TOKEN, "a token that is no move", "reload the page")
            })?);
        }
        let from_step = (from_step as usize).min(line.len() - 1);
        // Others may take the line while this one waits; the one that comes later wins, so it is put back unless it is
        // outdated.
        let mut reading = match self.line.borrow_mut().take() {
            Some(reading) => reading,
            None => Line::new(&model.tracker),
        };
        let mut step = reading.rewind(&model.tracker, &line, from_step);
        let mut told = 0;
        while step < line.len() {
            let answer = reading.push(&model.tracker, line[step]).await;
            let answer = answer.map_err(|error| faults::of_tracker(&error))?;
            if step >= from_step {
                self.host.say(id, Say::Step { answer: Box::new(answer) });
                told += 1;
            }
            step += 1;
            if step < line.len() {
                self.host.pause().await;
            }
            if self.predicting.get() != id || self.is_cancelled(id) {
                self.keep(&model, reading);
                return Ok(Say::Superseded);
            }
        }
        self.keep(&model, reading);
        Ok(Say::Predicted { steps: told, millis: self.host.now_millis() - started })
    }

    /// Keeps what was read of a line, unless another checkpoint was opened or a later request has its own.
    fn keep(&self, model: &Rc<OpenModel>, line: Line) {
        let is_current = self.model.borrow().as_ref().is_some_and(|now| Rc::ptr_eq(now, model));
        let mut kept = self.line.borrow_mut();
        if is_current && kept.is_none() {
            *kept = Some(line);
        }
    }

    async fn grade(
        &self,
        id: u32,
        job: &GradeJob,
        files: Vec<Box<dyn InputFile>>,
    ) -> Result<Say, Fault> {
        if self.grading.replace(true) {
            let message = "another evaluation is running";
            return Err(Fault::new(code::BUSY, message, "wait for it, or cancel it"));
        }
        let model = self.model.borrow().clone();
        let cancelled = || self.is_cancelled(id);
        let run = Run {
            host: &self.host,
            id,
            model: model.as_deref(),
            cancelled: &cancelled,
            #[cfg(feature = "webgpu")]
            gpu: self.gpu.as_ref(),
        };
        let graded = run.grade(job, files).await;
        self.grading.set(false);
        graded
    }
}

/// The id of a request of which nothing else can be read; 0 if that cannot be either.
fn id_of(text: &str) -> u32 {
    let json: Option<serde_json::Value> = serde_json::from_str(text).ok();
    let id = json.and_then(|json| json.get("id")?.as_u64());
    id.and_then(|id| id.try_into().ok()).unwrap_or(0)
}
