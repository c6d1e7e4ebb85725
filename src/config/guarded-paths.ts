/** Files and directories that a configuration names and that no service may read. */
import type { AuthSettings } from '../auth.ts';
import type { ResultsConfig, TlsFiles } from './config.ts';

export interface GuardedPathsOptions {
  readonly state: { readonly directory: string };
  readonly auth: Pick<AuthSettings, 'secret'>;
  readonly service: { readonly tls: TlsFiles };
  readonly results: { readonly ssh: Pick<ResultsConfig['ssh'], 'knownHostsFile'> };
}

export function guardedPathsOf({ state, auth, service, results }: GuardedPathsOptions): string[] {
  const secretFile = auth.secret.kind === 'file' ? auth.secret.path : null;
  const files = [state.directory, secretFile, service.tls.keyFile, results.ssh.knownHostsFile];
  return files.filter((file) => file !== null);
}
