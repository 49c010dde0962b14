use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Parser as _};
use syn::{Expr, Lit, LitStr, Path, Token};

use crate::crate_path::CratePath;
use crate::duration::Duration;
use crate::errors::Errors;
use crate::nearest::nearest;
use crate::template::Template;

/// Every argument, and how it is written.
const KEYS: [(&str, &str); 8] = [
    ("lock", "lock = \"/locks/<id>\""),
    ("timeout", "timeout = \"3s\""),
    ("hold", "hold = \"30s\""),
    ("service", "service = self.locks"),
    ("reentrant", "reentrant"),
    ("on_lost", "on_lost = \"finish\""),
    ("release", "release = \"detach\""),
    ("crate", "crate = ::fenced"),
];

fn names() -> [&'static str; 8] {
    KEYS.map(|(name, _)| name)
}

/// The arguments of `#[fenced(…)]`, as far as they could be understood.
#[derive(Default)]
pub(crate) struct Args {
    pub(crate) lock: Option<Template>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) hold: Option<Duration>,
    pub(crate) service: Option<Expr>,
    pub(crate) reentrant: Option<Span>,
    pub(crate) on_lost: Option<Ident>,
    pub(crate) release: Option<Ident>,
    pub(crate) krate: CratePath,
    /// The arguments that were written, or that a typo was probably meant to be.
    attempted: Vec<String>,
}

impl Args {
    /// Reads the arguments, resuming at the next comma after each mistake.
    pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Self {
        let mut args = Self::default();
        let read = |input: ParseStream<'_>| {
            while !input.is_empty() {
                if let Err(error) = args.argument(input, errors) {
                    errors.push(error);
                    skip_to_comma(input)?;
                }
                if !input.is_empty() {
                    errors.ok(input.parse::<Token![,]>());
                }
            }
            Ok(())
        };
        if let Err(error) = read.parse2(tokens) {
            errors.push(error);
        }
        args
    }

    /// Reports that the lock is missing, underlining the function: an attribute without arguments
    /// has nothing else to underline than itself.
    pub(crate) fn require_lock(&self, function: &Ident, errors: &mut Errors) {
        if !self.attempted.iter().any(|key| key == "lock") {
            errors.at(
                function,
                "`#[fenced]` needs to know the lock: write `#[fenced(lock = \"/locks/<id>\")]`",
            );
        }
    }

    fn argument(&mut self, input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<()> {
        if !input.peek(Ident::peek_any) {
            return Err(self.nameless(input));
        }
        let key = input.call(Ident::parse_any)?;
        let name = key.to_string();
        let Some((_, usage)) = KEYS.iter().find(|(known, _)| *known == name) else {
            return Err(self.unknown(&key));
        };
        if self.attempted.contains(&name) {
            errors.at(&key, format!("`{name}` is given twice"));
        }
        self.attempted.push(name.clone());
        if name == "reentrant" {
            self.reentrant = Some(key.span());
            return reject_value(input);
        }
        let is_assigned = input.parse::<Option<Token![=]>>()?.is_some();
        if !is_assigned || input.is_empty() || input.peek(Token![,]) {
            return Err(syn::Error::new(
                key.span(),
                format!("`{name}` needs a value, as in `{usage}`"),
            ));
        }
        self.value(&name, input)
    }

    fn value(&mut self, name: &str, input: ParseStream<'_>) -> syn::Result<()> {
        match name {
            "lock" => self.lock = Some(Template::parse(&literal(input)?)?),
            "timeout" => self.timeout = Some(Duration::new(input.parse()?)?),
            "hold" => self.hold = Some(hold(input.parse()?)?),
            "service" => self.service = Some(input.parse()?),
            "on_lost" => {
                self.on_lost = Some(choice(
                    input,
                    &[("cancel", "Cancel"), ("finish", "Finish")],
                )?);
            }
            "release" => {
                self.release = Some(choice(input, &[("await", "Await"), ("detach", "Detach")])?);
            }
            _ => self.krate = CratePath::new(input.call(Path::parse_mod_style)?)?,
        }
        Ok(())
    }

    /// A path alone also counts as having given the lock.
    fn nameless(&mut self, input: ParseStream<'_>) -> syn::Error {
        match input.fork().parse::<LitStr>() {
            Ok(path) => {
                self.attempted.push("lock".to_owned());
                let path = path.token();
                input.error(format!("every argument has a name: write `lock = {path}`"))
            }
            Err(_) => input.error(format!("expected one of `{}`", names().join("`, `"))),
        }
    }

    /// A typo also counts as having given the argument it resembles.
    fn unknown(&mut self, key: &Ident) -> syn::Error {
        let name = key.to_string();
        let hint = match nearest(&name, names()) {
            Some(near) => {
                self.attempted.push(near.to_owned());
                format!("did you mean `{near}`?")
            }
            None => format!("expected one of `{}`", names().join("`, `")),
        };
        syn::Error::new(key.span(), format!("unknown argument `{name}`: {hint}"))
    }
}

fn skip_to_comma(input: ParseStream<'_>) -> syn::Result<()> {
    while !input.is_empty() && !input.peek(Token![,]) {
        input.parse::<TokenTree>()?;
    }
    Ok(())
}

fn reject_value(input: ParseStream<'_>) -> syn::Result<()> {
    if !input.peek(Token![=]) {
        return Ok(());
    }
    input.parse::<Token![=]>()?;
    Err(input.error("`reentrant` takes no value: write it alone, or leave it out"))
}

fn literal(input: ParseStream<'_>) -> syn::Result<LitStr> {
    match ungrouped(input.parse()?) {
        Expr::Lit(syn::ExprLit {
            lit: Lit::Str(text),
            ..
        }) => Ok(text),
        other => Err(syn::Error::new_spanned(
            other,
            "the lock is written out as a string literal, so that it is checked now: values go into holes, as in \"/locks/<id>\"",
        )),
    }
}

/// The expression that a `macro_rules!` put into a group of its own.
pub(crate) fn ungrouped(expr: Expr) -> Expr {
    match expr {
        Expr::Group(group) => ungrouped(*group.expr),
        expr => expr,
    }
}

fn hold(expr: Expr) -> syn::Result<Duration> {
    let hold = Duration::new(expr)?;
    if hold.is_zero() {
        return Err(syn::Error::new_spanned(
            hold,
            "a section that may hold its lock for no time at all loses it before it begins",
        ));
    }
    Ok(hold)
}

/// One of a few words, as the variant it stands for.
fn choice(input: ParseStream<'_>, choices: &[(&str, &str)]) -> syn::Result<Ident> {
    let all: Vec<String> = choices
        .iter()
        .map(|(word, _)| format!("\"{word}\""))
        .collect();
    let all = all.join(" or ");
    if !input.peek(LitStr) {
        return Err(input.error(format!("expected {all}")));
    }
    let text: LitStr = input.parse()?;
    let word = text.value();
    if let Some((_, variant)) = choices.iter().find(|(known, _)| *known == word) {
        return Ok(Ident::new(variant, text.span()));
    }
    let near = nearest(&word, choices.iter().map(|(word, _)| *word));
    let hint = near.map_or(format!("expected {all}"), |near| {
        format!("did you mean \"{near}\"?")
    });
    Err(syn::Error::new(
        text.span(),
        format!("unknown value \"{word}\": {hint}"),
    ))
}
