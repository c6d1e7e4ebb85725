/** What a person needs to use a running sandbox, for `agent sandbox`. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Sandbox } from './sandbox.ts';

/** Facts, all printable: secrets are in files (0600) that are only named. */
export interface SandboxDescription {
  readonly baseUrl: string;
  readonly fileTransferUrl: string;
  /** Null if JobManagementWs is not there. */
  readonly jobsUrl: string | null;
  readonly namespace: string;
  readonly username: string;
  readonly passwordFile: string;
  readonly tokenFile: string;
  readonly controlUrl: string;
  readonly controlTokenFile: string;
  readonly jobsDirectory: string;
}

const secretFile = ({ directory }: Sandbox, name: string) => join(directory, 'secrets', name);

/** Writes the secrets of the first user and of the control interface to `<directory>/secrets/`. */
export async function writeSecrets(sandbox: Sandbox): Promise<void> {
  const { password = '', token = '' } = sandbox.users[0] ?? {};
  await mkdir(join(sandbox.directory, 'secrets'), { recursive: true, mode: 0o700 });
  for (const [name, secret] of Object.entries({ password, token, 'control-token': sandbox.controlToken }))
    await writeFile(secretFile(sandbox, name), `${secret}\n`, { mode: 0o600 });
}

/** Names everything, also the files that `writeSecrets` wrote. */
export function describeSandbox(sandbox: Sandbox): SandboxDescription {
  const { baseUrl, fileTransferUrl, jobsUrl, namespace, directory, users } = sandbox;
  return {
    baseUrl,
    fileTransferUrl,
    jobsUrl,
    namespace,
    username: users[0]?.username ?? '',
    passwordFile: secretFile(sandbox, 'password'),
    tokenFile: secretFile(sandbox, 'token'),
    controlUrl: `${baseUrl}/sandbox/`,
    controlTokenFile: secretFile(sandbox, 'control-token'),
    jobsDirectory: join(directory, 'jobs'),
  };
}

/** The facts as comments, then the configuration of an agent that follows this sandbox: all of it is YAML. */
export function printable(description: SandboxDescription): string {
  const facts = [
    ['file transfer', description.fileTransferUrl],
    ['job management', description.jobsUrl ?? 'none'],
    ['sign-in', description.baseUrl],
    ['jobs', description.jobsDirectory],
    ['control', `${description.controlUrl} (token in ${description.controlTokenFile})`],
  ].map(([name = '', value = '']) => `# ${name.padEnd(14)} ${value}`);
  return [...facts, '', ...configurationOf(description)].join('\n');
}

function configurationOf(description: SandboxDescription): string[] {
  const text = (value: string) => JSON.stringify(value);
  return [
    'service:',
    `  fileTransferUrl: ${text(description.fileTransferUrl)}`,
    `  namespace: ${text(description.namespace)}`,
    `  baseUrl: ${text(description.baseUrl)}`,
    ...(description.jobsUrl === null ? [] : [`  jobsUrl: ${text(description.jobsUrl)}`]),
    'auth:',
    '  method: password',
    `  username: ${text(description.username)}`,
    `  passwordFile: ${text(description.passwordFile)}`,
  ];
}
