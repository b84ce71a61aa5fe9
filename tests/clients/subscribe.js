// Subscribes with graphql-ws and ws: {url, key, query, variables, count} from standard input. Writes the updates, the
// error of the operation, or the code with which the connection was closed.
const { createClient } = require("graphql-ws");
const WebSocket = require("ws");

const { url, key, query, variables, count } = JSON.parse(require("fs").readFileSync(0, "utf8"));
const updates = [];

const client = createClient({
  url,
  webSocketImpl: WebSocket,
  retryAttempts: 0,
  lazy: true,
  connectionParams: key ? { access_key: key } : undefined,
});

function end(answer) {
  console.log(JSON.stringify({ updates, ...answer }));
  process.exit(0);
}

const unsubscribe = client.subscribe(
  { query, variables },
  {
    next: ({ data }) => {
      updates.push(Object.values(data)[0]);
      if (updates.length === count) {
        unsubscribe();
      }
    },
    error: (error) => end(Array.isArray(error) ? { errors: error } : { closed: error.code }),
    complete: () => end({}),
  },
);
