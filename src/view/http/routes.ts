/** The addresses of the view (contract/addresses.ts). */
import { get, type HttpGate, type HttpRoute } from '../../http/app.ts';
import { parseJobId } from '../../job.ts';
import type { ViewParts } from '../parts.ts';
import type { Proofs } from '../proof.ts';
import { contentRoutes } from './content-routes.ts';
import { eventRoutes } from './event-routes.ts';
import { findRoutes } from './find-routes.ts';
import { entryRoutes } from './gate.ts';
import { type PageFiles, pageFile } from './page-files.ts';
import { resultRoutes } from './result-routes.ts';

export const routesOf = (parts: ViewParts, page: PageFiles, proofs: Proofs): readonly HttpRoute[] => [
  get('/', (context) => pageFile(context, page, 'index.html')),
  get('/assets/:name', (context) => pageFile(context, page, `assets/${context.req.param('name')}`)),
  ...entryRoutes(proofs, 'path' in parts.settings.listen ? parts.settings.listen.path : undefined),
  ...eventRoutes(parts),
  ...contentRoutes(parts),
  ...resultRoutes(parts),
  ...findRoutes(parts),
];

/** These read no job. */
const ENTRY = /^\/api\/(?:hello|session|pass)$/;

/** A request waits for what its route reads. */
export const readyGate =
  ({ stores }: ViewParts): HttpGate =>
  async ({ req }, next) => {
    const isOfResults = req.path === '/api/results' || req.query('result') !== undefined;
    if (req.path.startsWith('/api/') && !ENTRY.test(req.path))
      await stores.ready(isOfResults ? parseJobId(req.query('job') ?? '') : undefined);
    await next();
  };
