// SPDX-License-Identifier: MIT
//! Compiles libflowfd into the crate. `c/` has its sources: links in a checkout, copies in a
//! package that cargo makes of it.

use std::{env, fs, path::Path};

fn main() {
    let mut build = cc::Build::new();
    let version = format!("\"{}\"", env::var("CARGO_PKG_VERSION").unwrap());
    for entry in fs::read_dir("c/lib").expect("the sources of the library are in c/lib") {
        let path = entry.unwrap().path();
        if path.extension().map_or(false, |e| e == "c") {
            build.file(path);
        }
    }
    // Debian's musl-tools have no headers of Linux; elsewhere these are where they are found.
    if env::var("CARGO_CFG_TARGET_ENV").map_or(false, |it| it == "musl") {
        let arch = env::var("CARGO_CFG_TARGET_ARCH").unwrap();
        for path in ["/usr/include".into(), format!("/usr/include/{arch}-linux-gnu")] {
            build.flag("-idirafter").flag(&path);
        }
    }
    build
        .file("src/sizes.c")
        .include("c/include")
        .include("c/uapi")
        .define("_GNU_SOURCE", None)
        .define("FLOWFD_VERSION", version.as_str())
        .flag("-std=gnu11")
        .compile("flowfd");
    for path in ["c/lib", "c/include", "c/uapi", "src/sizes.c"] {
        assert!(Path::new(path).exists());
        println!("cargo:rerun-if-changed={path}");
    }
}
