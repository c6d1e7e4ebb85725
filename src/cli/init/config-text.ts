/** The configuration that `agent init` writes: config.example.yaml with the answers in the places of the examples. */
import fs from 'node:fs';
import type { AuthMethod } from '../../auth.ts';
import { printableJson } from '../../printable.ts';
import { packageFile } from '../../system/package-file.ts';

/** What `agent init` has to know. Paths as they are to stand in the file. */
export interface Answers {
  readonly fileTransferUrl: string;
  readonly namespace: string;
  /** Null where none was found. */
  readonly jobsUrl: string | null;
  /** Null with the method `session-code`, which needs none. */
  readonly baseUrl: string | null;
  readonly method: AuthMethod;
  /** Null with the method `session-code`. */
  readonly username: string | null;
  readonly projectId: string | null;
  /** The key that says where the secret is, and its value: `passwordFile`, `./password`. */
  readonly secret: readonly [key: string, value: string | readonly string[]];
  readonly mirrorDirectory: string;
  readonly stateDirectory: string;
}

export function configText(answers: Answers): string {
  let text = fs.readFileSync(packageFile('config.example.yaml'), 'utf8');
  const replace = (line: RegExp, lines: readonly string[]) => {
    if (!line.test(text)) throw new Error(`config.example.yaml has no line like ${line}`);
    text = text.replace(line, () => lines.join('\n'));
  };
  const { method, username, projectId, baseUrl, secret } = answers;
  replace(/^ {2}fileTransferUrl: .*$/m, [`  fileTransferUrl: ${quoted(answers.fileTransferUrl)}`]);
  replace(/^ {2}namespace: .*$/m, [`  namespace: ${quoted(answers.namespace)}`]);
  if (answers.jobsUrl !== null) replace(/^ {2}# jobsUrl: null .*\n.*$/m, [`  jobsUrl: ${quoted(answers.jobsUrl)}`]);
  replace(/^ {2}baseUrl: .*$/m, [baseUrl === null ? '  # baseUrl: null' : `  baseUrl: ${quoted(baseUrl)}`]);
  replace(/^ {2}# method: password .*$/m, [`  method: ${method}`]);
  replace(/^ {2}username: .*$/m, [
    ...(username === null ? [] : [`  username: ${quoted(username)}`]),
    ...(projectId === null ? [] : [`  projectId: ${quoted(projectId)}`]),
  ]);
  replace(/^ {2}passwordFile: .*$/m, [`  ${secret[0]}: ${quoted(secret[1])}`]);
  for (const [section, directory] of [
    ['mirror', answers.mirrorDirectory],
    ['state', answers.stateDirectory],
  ] as const) {
    const block = new RegExp(`^# ${section}:.*\\n(?:#.*\\n)+`, 'm');
    const [lines = ''] = block.exec(text) ?? [];
    replace(block, [
      lines
        .replace(/^# /, '')
        .replace(/^# {3}directory: \S+/m, () => `  directory: ${quoted(directory)}`)
        .replaceAll(/^# {3}/gm, '  # '),
    ]);
  }
  return text.replace(
    /^#.*\n/,
    '# Configuration of jobtail (the command `agent`), written by `agent init`. Try it with `agent check`.\n',
  );
}

/** JSON is YAML, whatever the text holds. */
const quoted = (value: string | readonly string[]) => printableJson(value);
