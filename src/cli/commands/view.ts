/** `agent view`: the link of the view of the running agent, or the view served by this command. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Config } from '../../config/config.ts';
import { fleetOfView } from '../../daemon/fleet.ts';
import { openSharedStore } from '../../daemon/state.ts';
import { PLAIN_VIEW_HINT, plainView, viewSettingsOf } from '../../daemon/view-thread.ts';
import { asJobtailError, JobtailError } from '../../errors.ts';
import { runningAgent } from '../../store/lock.ts';
import { versionOfProgram } from '../../system/package-file.ts';
import { findView, linkTo, unprovenText } from '../../view/link.ts';
import { type RunningView, serveView } from '../../view/serve.ts';
import type { ViewSettings } from '../../view/settings.ts';
import { readToken, tokenFileOf } from '../../view/token.ts';
import { type ConfigOption, ownConfiguration } from '../configuration.ts';
import { untilStopped } from '../process.ts';

export interface ViewArguments extends ConfigOption {
  readonly open: boolean;
}

const ANY_FREE = { host: '127.0.0.1', port: 0 } as const;

export async function view(options: ViewArguments): Promise<void> {
  const config = await ownConfiguration(options);
  const settings = viewSettingsOf(config, { program: versionOfProgram(), agentPid: null });
  const running = await linkOfAgent(config, settings);
  if (running !== undefined) return show(running, settings, options);
  // Reports errors of the state before the view is served.
  openSharedStore(config).close();
  await untilStopped((signal) => serveHere(config, settings, { ...options, signal }), { isServer: true });
}

/** Undefined if the server there has not proven to be the view. */
async function linkOfAgent(config: Config, settings: ViewSettings): Promise<string | undefined> {
  if (config.view === null || runningAgent(config.state.directory) === undefined) return undefined;
  const token = readToken(tokenFileOf(settings));
  const found = await findView(settings.listen, token);
  if (found.kind === 'view' && token !== undefined) return linkTo(found.start, token, settings);
  const problem =
    found.kind === 'unproven'
      ? `${unprovenText(settings.listen)}: open no link to it`
      : 'the view of the running agent does not answer (the log of the agent has the reason)';
  process.stderr.write(`${problem}; this command serves a view of its own\n`);
  return undefined;
}

type HereOptions = ViewArguments & { readonly signal: AbortSignal };

async function serveHere(config: Config, settings: ViewSettings, { signal, ...options }: HereOptions): Promise<void> {
  const plain = plainView(config.view);
  if (plain !== undefined) process.stderr.write(`agent: ${plain} (${PLAIN_VIEW_HINT})\n`);
  process.chdir('/');
  const served = await serve(config, settings);
  try {
    show(served.link(), settings, options);
    const isFollowed = runningAgent(config.state.directory) !== undefined;
    const more = isFollowed ? '' : '; no agent is running: start one to get new data (agent run)';
    process.stderr.write(`served until Ctrl-C${more}\n`);
    if (!signal.aborted) await once(signal, 'abort');
  } finally {
    await served.close();
  }
}

async function serve(config: Config, settings: ViewSettings): Promise<RunningView> {
  const serveAt = async (listen: ViewSettings['listen']) =>
    await serveView({
      settings: { ...settings, listen },
      fleet: config.fleet && (await fleetOfView(config.fleet, settings)),
      figures: null,
      onFailure: (error) => process.stderr.write(`agent: ${asJobtailError(error).message}\n`),
    });
  const isAgents = runningAgent(config.state.directory) !== undefined;
  try {
    return await serveAt(settings.listen);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE' && (config.view === null || isAgents)) return await serveAt(ANY_FREE);
    if (code === undefined || !/^E[A-Z]+$/.test(code)) throw error;
    throw new JobtailError('config', `the view cannot listen: ${message}`, {
      hint: 'set view.listen to a free address of this machine',
    });
  }
}

function show(link: string, settings: ViewSettings, { open }: ViewArguments): void {
  process.stdout.write(`${link}\n`);
  const { listen, publicUrl } = settings;
  if ('path' in listen && publicUrl === null) {
    process.stderr.write(`forward the socket first: ssh -L 9470:${listen.path} ${os.hostname()}\n`);
    return;
  }
  const { DISPLAY, WAYLAND_DISPLAY } = process.env;
  if (!open || !process.stdout.isTTY || (DISPLAY ?? WAYLAND_DISPLAY ?? '') === '') return;
  try {
    const page = openingPage(link, settings.stateDirectory);
    const opener = spawn('xdg-open', [pathToFileURL(page).href], { stdio: 'ignore', detached: true });
    // Without a browser, the operator opens the link.
    opener.on('error', () => {});
    opener.unref();
  } catch {}
}

/** A private file that redirects to the link: all users can read the arguments of a program. */
function openingPage(link: string, directory: string): string {
  const file = path.join(directory, 'view-open.html');
  fs.rmSync(file, { force: true });
  const page = `<!doctype html><meta http-equiv="refresh" content="0; url=${link}"><a href="${link}">The view</a>\n`;
  fs.writeFileSync(file, page, { mode: 0o600, flag: 'wx' });
  return file;
}
