/** The user of the proxy, read anew for each connection. */
import { Secret } from '../../system/secret.ts';

interface ProxyUserHolder {
  readonly proxyUserFile?: string | null;
}

/** @throws JobtailError secret-unavailable */
export async function proxyUserOf({ proxyUserFile = null }: ProxyUserHolder): Promise<{ proxyUser?: string }> {
  if (proxyUserFile === null) return {};
  const source = { kind: 'file', path: proxyUserFile } as const;
  const secret = new Secret({ source, name: 'user of the proxy', env: {} });
  return { proxyUser: await secret.read(new AbortController().signal) };
}
