use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, LazyLock};

use redis::{Arg, Cmd};

use crate::RedisCall;

macro_rules! lua {
    (@ $name:ident) => { concat!(include_str!(concat!("lua/", stringify!($name), ".lua")), "\n") };
    (@ $text:literal) => { $text };
    ($($part:tt)*) => { concat!($(lua!(@ $part)),*) };
}

/// What the server runs in one step, and the digest by which it knows it.
#[derive(Debug)]
pub(crate) struct Script {
    text: Cow<'static, str>,
    digest: String,
}

macro_rules! scripts {
    ($($(#[$doc:meta])* $name:ident = [$($part:tt)*];)*) => {$(
        $(#[$doc])*
        pub(crate) static $name: LazyLock<Script> = LazyLock::new(|| Script::new(lua!($($part)*)));
    )*};
}
scripts! {
    CLAIM = [compare raise "return 1"];
    READ = [compare raise "if ARGV[4] then return redis.call('HGET', KEYS[2], ARGV[4]) end return redis.call('GET', KEYS[2])"];
    /// The most frequent batch, without what a list of operations costs.
    SET = [compare raise "redis.call('SET', KEYS[2], ARGV[5]) return '[1]'"];
    SET_NAMED = [compare named raise replay "redis.call('SET', KEYS[3], ARGV[7]) local answer = '[1]'\n" keep answer];
    /// Operations that cannot fail once they are allowed to write.
    APPLY = [compare unnamed raise apply answer];
    APPLY_NAMED = [compare named raise replay apply keep answer];
    /// Operations of which some can.
    CHECK_AND_APPLY = [compare unnamed check raise apply answer];
    CHECK_AND_APPLY_NAMED = [compare named "if not kept then\n" check "end\n" raise replay apply keep answer];
    OUTCOME = [outcome];
    COLLECT = [collect];
    RESET = [reset];
}

impl Script {
    fn new(text: impl Into<Cow<'static, str>>) -> Self {
        let text = text.into();
        let digest = redis::Script::new(&text).get_hash().to_owned();
        Self { text, digest }
    }

    /// The start of a command that runs a script which the server may know.
    pub(crate) fn command(&self, arguments: usize, bytes: usize) -> Cmd {
        let mut command = Cmd::with_capacity(arguments + 3, bytes + 64);
        command.arg("EVALSHA").arg(&self.digest);
        command
    }

    /// The same command for a server that does not know the script, and learns it.
    pub(crate) fn in_full(&self, command: &Cmd) -> Cmd {
        let mut full = redis::cmd("EVAL");
        full.arg(&*self.text);
        for argument in command.args_iter().skip(2) {
            if let Arg::Simple(argument) = argument {
                full.arg(argument);
            }
        }
        full
    }
}

/// A Lua script of yours, which runs behind the check of the fence and in one atomic step with it.
///
/// It sees its own keys and arguments as `KEYS` and `ARGV`, and what it returns is kept as JSON:
/// a whole number up to 2^53 exactly, `nil` as `null`. If it returns `redis.error_reply(…)`, or
/// fails, no answer is kept; but Redis does not undo what it has written before: let it check all
/// it needs before its first write. Use each key only as one of `KEYS`, and values only as one of
/// `ARGV`: the text is stored by the server, so that it should not differ from call to call.
///
/// ```
/// use fenced_redis::RedisScript;
///
/// let sell = RedisScript::new(
///     "local left = tonumber(redis.call('GET', KEYS[1]) or '0') - tonumber(ARGV[1])
///      if left < 0 then return redis.error_reply('SOLDOUT nothing is left') end
///      redis.call('SET', KEYS[1], left)
///      return left",
/// );
/// let write = sell.call().key("{4711}:count").arg("2");
/// # drop(write);
/// ```
#[derive(Clone)]
pub struct RedisScript {
    texts: Arc<Texts>,
}

struct Texts {
    named: Script,
    unnamed: Script,
}

impl RedisScript {
    /// Takes the text of the script. Keep the value: this computes its digests.
    #[must_use]
    pub fn new(text: impl AsRef<str>) -> Self {
        // On the first line, so that the server's errors name the lines of the text.
        let body = format!("local function body(KEYS, ARGV) {}\nend\n", text.as_ref());
        let behind = |rest: &str| Script::new(format!("{body}{rest}"));
        let texts = Texts {
            named: behind(lua!(compare named raise replay run keep answer)),
            unnamed: behind(lua!(compare unnamed raise run answer)),
        };
        Self {
            texts: Arc::new(texts),
        }
    }

    /// One call, to which keys and arguments are added.
    pub fn call(&self) -> RedisCall {
        RedisCall::new(self.clone())
    }

    pub(crate) fn behind_fence(&self, named: bool) -> &Script {
        if named {
            &self.texts.named
        } else {
            &self.texts.unnamed
        }
    }
}

impl fmt::Debug for RedisScript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisScript")
            .field("digest", &self.texts.named.digest)
            .finish_non_exhaustive()
    }
}
