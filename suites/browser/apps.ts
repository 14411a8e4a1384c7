/**
 * Programs whose pages live on WebSockets: how each is started, and what a user does on its page.
 */

import { mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { installNpm, installPython } from "../install.ts";
import type { Program } from "../program.ts";
import type { Certificates } from "../suite.ts";
import type { Page } from "./chromium.ts";

export interface Place {
  /** Of this program alone. */
  readonly folder: string;
  readonly port: number;
  /** Where it speaks TLS itself. */
  readonly tls?: Certificates;
}

export interface App {
  readonly name: string;
  readonly hostname: string;
  readonly source: string;
  readonly short: boolean;
  install(): Promise<unknown>;
  program(place: Place): Promise<Program>;
  /** What a user does, by the name of the case; in this order, on one page. */
  readonly steps: Readonly<Record<string, (page: Page, place: Place) => Promise<void>>>;
}

/** A socket to another host would be a program's way around the gateway. */
const OWN_SOCKET =
  "window.sockets.some(({ host, opened, messages }) => host === location.host && opened && messages > 0)";

const SECONDS = 60;

const VITE = "8.3.8";

const vite: App = {
  name: "Vite",
  hostname: "vite.suites.test",
  source: `vite@${VITE}`,
  short: true,
  install: () => installNpm("vite", VITE),
  async program({ folder, port, tls }) {
    const modules = join(await installNpm("vite", VITE), "node_modules");
    mkdirSync(folder, { recursive: true });
    symlinkSync(modules, join(folder, "node_modules"));
    const https =
      tls === undefined
        ? ""
        : `, https: { cert: ${JSON.stringify(tls.cert)}, key: ${JSON.stringify(tls.key)} }`;
    writeFileSync(
      join(folder, "vite.config.js"),
      `export default { server: { host: "127.0.0.1", port: ${port}, strictPort: true, allowedHosts: true${https} } };\n`,
    );
    writeFileSync(
      join(folder, "index.html"),
      `<p id="word"></p><script type="module" src="/main.js"></script>\n`,
    );
    writeViteWord(folder, "first");
    writeFileSync(join(folder, "main.js"), VITE_MAIN);
    return { command: process.execPath, args: [join(modules, "vite/bin/vite.js")], cwd: folder };
  },
  steps: {
    async "the page loads"(page) {
      await page.waitFor(`document.querySelector("#word")?.textContent.length > 0`, SECONDS);
    },
    async "a WebSocket to its own host opens"(page) {
      await page.waitFor(OWN_SOCKET, SECONDS);
    },
    async "hot reload brings a change"(page, { folder }) {
      const word = `word-${Date.now()}`;
      writeViteWord(folder, word);
      await page.waitFor(`document.querySelector("#word").textContent === "${word}"`, SECONDS);
    },
  },
};

/** In one step: Vite must not read the file between its emptying and its writing. */
function writeViteWord(folder: string, word: string): void {
  const written = `${folder}-word.js`;
  writeFileSync(written, `export const word = ${JSON.stringify(word)};\n`);
  renameSync(written, join(folder, "word.js"));
}

const VITE_MAIN = `import { word } from "./word.js";
const show = (text) => { document.querySelector("#word").textContent = text; };
show(word);
import.meta.hot.accept("./word.js", (changed) => show(changed.word));
`;

const JUPYTER = { name: "jupyterlab", packages: ["jupyterlab==4.6.6"] };

const jupyter: App = {
  name: "JupyterLab",
  hostname: "jupyter.suites.test",
  source: JUPYTER.packages[0] ?? "",
  short: false,
  install: () => installPython(JUPYTER),
  async program({ folder, port, tls }) {
    const python = await installPython(JUPYTER);
    mkdirSync(folder, { recursive: true });
    const flags = [
      "--no-browser",
      "--allow-root",
      "--ip=127.0.0.1",
      `--port=${port}`,
      "--port-retries=0",
      "--IdentityProvider.token=",
      "--ServerApp.allow_remote_access=True",
      "--LabApp.expose_app_in_browser=True",
      `--app-dir=${join(python.folder, "share/jupyter/lab")}`,
      ...(tls === undefined ? [] : [`--certfile=${tls.cert}`, `--keyfile=${tls.key}`]),
    ];
    const env = {
      ...python.env,
      HOME: folder,
      JUPYTER_PATH: join(python.folder, "share/jupyter"),
      JUPYTER_CONFIG_PATH: join(python.folder, "etc/jupyter"),
    };
    return { command: python.command, args: ["-m", "jupyterlab", ...flags], cwd: folder, env };
  },
  steps: {
    async "the page loads"(page) {
      await page.waitFor("window.jupyterapp?.serviceManager?.isReady", 2 * SECONDS);
    },
    async "a kernel computes"(page) {
      await page.evaluate(JUPYTER_KERNEL);
      await page.waitFor("window.computed !== undefined", 2 * SECONDS);
      await page.waitFor(`window.computed === "42"`, 1);
    },
    async "a WebSocket to its own host opens"(page) {
      await page.waitFor(OWN_SOCKET, SECONDS);
    },
  },
};

/**
 * What a notebook does with a cell; not awaited, because a kernel that never comes must not hold
 * the page.
 */
const JUPYTER_KERNEL = `void (async () => {
  const kernel = await window.jupyterapp.serviceManager.kernels.startNew({ name: "python3" });
  const future = kernel.requestExecute({ code: "6 * 7" });
  future.onIOPub = ({ header, content }) => {
    if (header.msg_type === "execute_result") window.computed = content.data["text/plain"];
  };
  await future.done;
  await kernel.shutdown();
})().catch((error) => { window.computed = String(error); })`;

const STREAMLIT = { name: "streamlit", packages: ["streamlit==1.67.0"] };

const streamlit: App = {
  name: "Streamlit",
  hostname: "streamlit.suites.test",
  source: STREAMLIT.packages[0] ?? "",
  short: false,
  install: () => installPython(STREAMLIT),
  async program({ folder, port, tls }) {
    const python = await installPython(STREAMLIT);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "app.py"), STREAMLIT_APP);
    const settings = {
      // It takes itself for its own development where it is not in site-packages.
      "global.developmentMode": "false",
      "server.headless": "true",
      "server.address": "127.0.0.1",
      "server.port": String(port),
      "browser.serverAddress": "streamlit.suites.test",
      "browser.gatherUsageStats": "false",
      ...(tls === undefined ? {} : { "server.sslCertFile": tls.cert, "server.sslKeyFile": tls.key }),
    };
    const flags = Object.entries(settings).map(([name, value]) => `--${name}=${value}`);
    const env = { ...python.env, HOME: folder };
    return {
      command: python.command,
      args: ["-m", "streamlit", "run", "app.py", ...flags],
      cwd: folder,
      env,
    };
  },
  steps: {
    async "the page loads"(page) {
      await page.waitFor(`document.body?.innerText.includes("pressed 0 times")`, SECONDS);
    },
    async "a WebSocket to its own host opens"(page) {
      await page.waitFor(OWN_SOCKET, SECONDS);
    },
    async "a button works"(page) {
      const button = `document.querySelector('[data-testid="stButton"] button')`;
      await page.waitFor(button, SECONDS);
      await page.evaluate(`${button}.click()`);
      await page.waitFor(`document.body.innerText.includes("pressed 1 times")`, SECONDS);
    },
  },
};

const STREAMLIT_APP = `import streamlit as st

state = st.session_state
state.setdefault("pressed", 0)
if st.button("press"):
    state.pressed += 1
st.write("pressed %d times" % state.pressed)
`;

export const APPS: readonly App[] = [vite, jupyter, streamlit];
