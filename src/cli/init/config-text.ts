/** The configuration of `agent init`: the answers. */
import type { AuthMethod } from '../../auth.ts';
import { printableJson } from '../../printable.ts';
import { DEFAULT_PATH } from '../../remote/rest/contract.ts';
import type { RestService } from './service.ts';

export type AnsweredService =
  | {
      readonly protocol: 'soap';
      readonly fileTransferUrl: string;
      readonly namespace: string;
      readonly jobsUrl: string | null;
      /** Null with the method `session-code`. */
      readonly baseUrl: string | null;
    }
  | RestService;

/** Paths as they appear in the file. */
export interface Answers {
  readonly service: AnsweredService;
  readonly method: AuthMethod;
  /** Null with the method `session-code`. */
  readonly username: string | null;
  readonly projectId: string | null;
  /** The key for the file of the secret, and its value: `passwordFile`, `./password`. */
  readonly secret: readonly [key: string, value: string | readonly string[]];
  readonly mirrorDirectory: string;
  readonly stateDirectory: string;
}

const HEAD = `# Configuration of jobtail (the command \`agent\`), written by \`agent init\`. Try it with \`agent check\`.
# \`agent help configuration\` lists all keys; config.example.yaml explains them.
`;

/** Keys with their default are left out. */
export function configText({ service, method, username, projectId, secret, ...directories }: Answers): string {
  const path = 'path' in service && service.path !== DEFAULT_PATH ? service.path : null;
  const [key, value] = secret;
  const sections: Readonly<Record<string, Readonly<Record<string, string | readonly string[] | null>>>> = {
    service: { ...service, path },
    auth: { method, username, projectId, [key]: value },
    mirror: { directory: directories.mirrorDirectory },
    state: { directory: directories.stateDirectory },
  };
  const texts = Object.entries(sections).map(([name, keys]) => {
    const given = Object.entries(keys).filter(([, one]) => one !== null);
    // JSON is valid YAML for any text.
    return [`\n${name}:`, ...given.map(([one, text]) => `  ${one}: ${printableJson(text)}`), ''].join('\n');
  });
  return `${HEAD}${texts.join('')}`;
}
