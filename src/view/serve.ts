/** A view that serves, whichever process runs it: it reads from outside, as `agent status` does. */
import path from 'node:path';
import { appOf } from '../http/app.ts';
import { type Connections, type Served, serveHttp } from '../http/server.ts';
import { packageFile } from '../system/package-file.ts';
import { gateOf } from './http/gate.ts';
import { pageFilesIn } from './http/page-files.ts';
import { readyGate, routesOf } from './http/routes.ts';
import { addressOf, linkWith, missingDirectory } from './link.ts';
import { partsOf, type ViewOptions, type ViewParts } from './parts.ts';
import { Proofs } from './proof.ts';
import { tokenFileOf, tokenOf } from './token.ts';

export interface RunningView extends Served {
  /** A new link, which opens it once: it is for a person, and no log. */
  link(): string;
  readonly parts: ViewParts;
}

/** A stream has its heartbeat before. */
const IDLE_MS = 60_000;

/** Serves until it is closed. @throws what `listen` fails with; JobtailError */
export async function serveView(options: ViewOptions): Promise<RunningView> {
  const { settings } = options;
  const { listen, publicUrl } = settings;
  const missing = missingDirectory(listen);
  if (missing !== undefined) throw missing;
  let port = 0;
  const proofs = new Proofs(tokenOf(tokenFileOf(settings)), () => addressOf(listen, port));
  const page = pageFilesIn(path.dirname(packageFile('dist/view/page/index.html')));
  const parts = partsOf(options);
  const { pathname: prefix } = new URL(publicUrl ?? 'http://localhost/');
  const app = (connections: Connections) =>
    appOf({
      routes: routesOf(parts, page, proofs),
      gates: [gateOf(proofs, connections), readyGate(parts)],
      hint: 'run agent view, and open the link that it prints',
      onFailure: parts.onFailure,
    });
  let served: Served;
  try {
    served = await serveHttp(listen, app, { prefix, idleMs: IDLE_MS });
  } catch (error) {
    await parts.close();
    throw error;
  }
  ({ port } = served);
  return {
    port,
    parts,
    link: () => linkWith(proofs.ticket(), settings, port),
    async close() {
      await served.close();
      await parts.close();
    },
  };
}
