/** Where the agent of the demo lives: a temporary directory with its configuration, which goes away again. */
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { SandboxDescription } from '../../sandbox/description.ts';

export const MIRROR_DIRECTORY = 'mirror';
export const STATE_DIRECTORY = 'state';
/** Files may appear while the directory is removed: a process that was just killed takes a moment to end. */
const REMOVAL = { recursive: true, force: true, maxRetries: 10, retryDelay: 50 };

export class AgentPlace {
  readonly directory = realpathSync(mkdtempSync(path.join(os.tmpdir(), 'jobtail-demo-')));
  readonly configFile = path.join(this.directory, 'config.yaml');

  /** Writes the configuration for a sandbox; its text. */
  async configure(sandbox: SandboxDescription): Promise<string> {
    const text = configurationFor(sandbox, path.relative(this.directory, sandbox.passwordFile));
    await writeFile(this.configFile, text);
    return text;
  }

  async remove(): Promise<void> {
    await rm(this.directory, REMOVAL);
  }

  removeNow(): void {
    rmSync(this.directory, REMOVAL);
  }
}

/** In a hurry, because the job lasts seconds and not days. */
function configurationFor({ fileTransferUrl, namespace, baseUrl, username }: SandboxDescription, passwordFile: string) {
  return `service:
  fileTransferUrl: ${fileTransferUrl}
  namespace: ${namespace}
  baseUrl: ${baseUrl}
  requestsPerMinute: 100000
auth:
  username: ${username}
  passwordFile: ${passwordFile}
mirror: {directory: ${MIRROR_DIRECTORY}}
state: {directory: ${STATE_DIRECTORY}}
poll: {minIntervalSeconds: 0.4, maxIntervalSeconds: 0.5}
results: {intervalSeconds: 1}
`;
}
