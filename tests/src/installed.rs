//! Where the servers' packages put them: Debian's paths, then Homebrew's.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

const DEBIAN_JARS: &str = "/usr/share/java";
/// What the server needs, named one by one: with all of Debian's jars it starts slower, and
/// their several logging backends leave it without a log.
const NEEDED_JARS: [&str; 6] = [
    "zookeeper",
    "zookeeper-jute",
    "slf4j-api",
    "slf4j-simple",
    "snappy-java",
    "metrics-core",
];
/// What Curator's recipes need beside that.
const CURATORS_JARS: [&str; 7] = [
    "curator-recipes",
    "curator-framework",
    "curator-client",
    "guava",
    "jackson-databind",
    "jackson-core",
    "jackson-annotations",
];
const HOMEBREW: [&str; 2] = ["/opt/homebrew", "/usr/local"];

/// The class path of the ZooKeeper server.
pub(crate) fn zookeeper_class_path() -> io::Result<String> {
    let jars = Path::new(DEBIAN_JARS);
    if jars.join("zookeeper.jar").exists() {
        let needed = NEEDED_JARS.map(|name| jars.join(name).with_extension("jar"));
        return Ok(joined(needed.into_iter().chain(unversioned_netty(jars)?)));
    }
    HOMEBREW
        .iter()
        .map(|prefix| Path::new(prefix).join("opt/zookeeper/libexec/lib"))
        .find(|lib| lib.exists())
        .map(|lib| lib.join("*").display().to_string())
        .ok_or_else(|| missing("ZooKeeper"))
}

/// The class path of a program on Curator's recipes, which only Debian packages.
pub(crate) fn curator_class_path() -> io::Result<String> {
    let jars = CURATORS_JARS.map(|name| Path::new(DEBIAN_JARS).join(name).with_extension("jar"));
    if !jars.iter().all(|jar| jar.exists()) {
        return Err(missing("Curator"));
    }
    let server = zookeeper_class_path()?;
    Ok(joined(jars.into_iter()) + ":" + &server)
}

fn unversioned_netty(jars: &Path) -> io::Result<Vec<PathBuf>> {
    let mut netty = Vec::new();
    for entry in fs::read_dir(jars)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let stem = name.strip_suffix(".jar").unwrap_or_default();
        if stem.starts_with("netty-") && !stem.contains('.') {
            netty.push(jars.join(&name));
        }
    }
    Ok(netty)
}

fn joined(jars: impl Iterator<Item = PathBuf>) -> String {
    jars.map(|jar| jar.display().to_string())
        .collect::<Vec<_>>()
        .join(":")
}

/// The program that runs the ZooKeeper server.
pub(crate) fn java() -> io::Result<PathBuf> {
    jdk("java")
}

/// The program that compiles for it.
pub(crate) fn javac() -> io::Result<PathBuf> {
    jdk("javac")
}

/// The program that makes keys and certificates for it.
pub(crate) fn keytool() -> io::Result<PathBuf> {
    jdk("keytool")
}

fn jdk(program: &str) -> io::Result<PathBuf> {
    let homebrew = HOMEBREW.map(|prefix| Path::new(prefix).join("opt/openjdk/bin"));
    // macOS has programs of its own by these names that only ask for an installation.
    find(program, homebrew.into_iter().chain(search_path()))
}

/// A program of the newest installed PostgreSQL.
pub(crate) fn postgres(program: &str) -> io::Result<PathBuf> {
    let mut versions = children("/usr/lib/postgresql", "");
    for prefix in HOMEBREW {
        versions.extend(children(&format!("{prefix}/opt"), "postgresql@"));
    }
    versions.sort_by_key(|folder| version(folder));
    let newest_first = versions.into_iter().rev().map(|folder| folder.join("bin"));
    find(program, newest_first.chain(search_path()))
}

/// A program of Redis.
pub(crate) fn redis(program: &str) -> io::Result<PathBuf> {
    let homebrew = HOMEBREW.map(|prefix| Path::new(prefix).join("bin"));
    find(program, search_path().chain(homebrew))
}

fn version(folder: &Path) -> u32 {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    name.trim_start_matches("postgresql@").parse().unwrap_or(0)
}

fn children(folder: &str, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| entry.path())
        .collect()
}

fn search_path() -> impl Iterator<Item = PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).collect::<Vec<_>>().into_iter()
}

fn find(program: &str, mut folders: impl Iterator<Item = PathBuf>) -> io::Result<PathBuf> {
    folders
        .find_map(|folder| Some(folder.join(program)).filter(|path| path.is_file()))
        .ok_or_else(|| missing(program))
}

pub(crate) fn missing(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::NotFound,
        format!("{what} is not installed: run `tests/run`"),
    )
}
