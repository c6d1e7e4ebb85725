/** Files and directories that a configuration names and that no service may read. */
import type { SecretSource } from './auth-schema.ts';

interface GuardedPathsOptions {
  readonly state: { readonly directory: string };
  readonly auth: { readonly secret: SecretSource };
  readonly service: { readonly tls: { readonly keyFile: string | null } };
  readonly results: { readonly ssh: { readonly knownHostsFile: string | null } };
}

export function guardedPathsOf({ state, auth, service, results }: GuardedPathsOptions): string[] {
  const secretFile = auth.secret.kind === 'file' ? auth.secret.path : null;
  const files = [state.directory, secretFile, service.tls.keyFile, results.ssh.knownHostsFile];
  return files.filter((file) => file !== null);
}
