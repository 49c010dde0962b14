use std::fmt;

use redis::Cmd;

use crate::RedisScript;
use crate::keys::shown;
use crate::script::Script;

/// One call of a [`RedisScript`], with its keys and arguments.
#[derive(Clone)]
#[must_use = "it says what to run, and runs nothing"]
pub struct RedisCall {
    script: RedisScript,
    keys: Vec<Vec<u8>>,
    arguments: Vec<Vec<u8>>,
}

impl RedisCall {
    pub(crate) fn new(script: RedisScript) -> Self {
        Self {
            script,
            keys: Vec::new(),
            arguments: Vec::new(),
        }
    }

    /// The next key. Every key that the script uses has to be one of these.
    pub fn key(mut self, key: impl Into<Vec<u8>>) -> Self {
        self.keys.push(key.into());
        self
    }

    /// The next argument.
    pub fn arg(mut self, argument: impl Into<Vec<u8>>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.keys.iter().map(|key| &**key)
    }

    pub(crate) fn script(&self, named: bool) -> &Script {
        self.script.behind_fence(named)
    }

    pub(crate) fn write_arguments(&self, command: &mut Cmd) {
        for argument in &self.arguments {
            command.arg(argument);
        }
    }
}

/// Arguments may be secret.
impl fmt::Debug for RedisCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<_> = self.keys().map(shown).collect();
        f.debug_struct("RedisCall")
            .field("script", &self.script)
            .field("keys", &keys)
            .finish_non_exhaustive()
    }
}
