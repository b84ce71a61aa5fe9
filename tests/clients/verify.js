// Verifies messages from standard input: [{secret, headers, body}]. Writes true or the error of each, and what
// this library signs it with.
const { Webhook } = require("standardwebhooks");

const messages = JSON.parse(require("fs").readFileSync(0, "utf8"));
const results = messages.map(({ secret, headers, body }) => {
  const webhook = new Webhook(secret);
  const at = new Date(Number(headers["webhook-timestamp"]) * 1000);
  const signature = webhook.sign(headers["webhook-id"], at, body);
  try {
    webhook.verify(body, headers);
    return [true, signature];
  } catch (error) {
    return [error.message, signature];
  }
});
console.log(JSON.stringify(results));
