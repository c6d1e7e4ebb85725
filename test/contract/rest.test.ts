/** The contract against the sandbox over REST, as twelve of its releases have it (docs/rest.md). */
import { contractOf } from './contract.ts';
import { SandboxService } from './sandbox-service.ts';
import { RELEASES, restDialect } from './service.ts';

contractOf('the sandbox', () => SandboxService.start(), RELEASES.map(restDialect));
