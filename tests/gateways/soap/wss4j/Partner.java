/* Apache WSS4J as a partner. One command for each line of standard input, one line of answer:
     verify FILE            what was signed and hidden, or "refused" and why
     protect FILE FILE      the second is the first with token, timestamp, signature, and, if HIDE, an encrypted body
   java Partner.java STORE PASSWORD-OF-STORE OWN PARTNER USER PASSWORD-OF-USER [HIDE] */
import java.io.*;
import java.nio.file.*;
import java.util.*;
import javax.security.auth.callback.*;
import javax.xml.parsers.*;
import javax.xml.transform.*;
import javax.xml.transform.dom.*;
import javax.xml.transform.stream.*;
import org.apache.ws.security.*;
import org.apache.ws.security.components.crypto.*;
import org.apache.ws.security.handler.RequestData;
import org.apache.ws.security.message.*;
import org.apache.ws.security.WSDataRef;
import org.w3c.dom.*;

public class Partner {
    static String[] given;
    static Crypto crypto;

    public static void main(String[] words) throws Exception {
        given = words;
        String name = "org.apache.ws.security.crypto.merlin.";
        Properties settings = new Properties();
        settings.put("org.apache.ws.security.crypto.provider", "org.apache.ws.security.components.crypto.Merlin");
        settings.put(name + "keystore.type", "pkcs12");
        settings.put(name + "keystore.password", words[1]);
        settings.put(name + "file", words[0]);
        crypto = CryptoFactory.getInstance(settings);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            String[] asked = line.split(" ");
            Document document = read(asked[1]);
            System.out.println(asked[0].equals("verify") ? verify(document) : protect(document, asked[2]));
            System.out.flush();
        }
    }

    static String verify(Document document) {
        CallbackHandler passwords = callbacks -> {
            for (Callback each : callbacks) {
                WSPasswordCallback asked = (WSPasswordCallback) each;
                boolean user = asked.getUsage() == WSPasswordCallback.USERNAME_TOKEN;
                asked.setPassword(user ? (given[4].equals(asked.getIdentifier()) ? given[5] : null) : given[1]);
            }
        };
        try {
            RequestData data = new RequestData();
            data.setWssConfig(WSSConfig.getNewInstance());
            data.setSigCrypto(crypto);
            data.setDecCrypto(crypto);
            data.setCallbackHandler(passwords);
            Element security = headerOf(document);
            if (security == null) return "refused no header";
            SortedSet<String> done = new TreeSet<>();
            for (WSSecurityEngineResult result : new WSSecurityEngine().processSecurityHeader(security, data)) {
                Integer action = (Integer) result.get(WSSecurityEngineResult.TAG_ACTION);
                if (action == WSConstants.UT) done.add("token");
                if (action == WSConstants.TS) done.add("time");
                Object parts = result.get(WSSecurityEngineResult.TAG_DATA_REF_URIS);
                if (parts == null) continue;
                for (Object part : (List<?>) parts)
                    done.add((action == WSConstants.ENCR ? "hidden:" : "signed:") + ((WSDataRef) part).getName().getLocalPart());
            }
            return "taken " + String.join(" ", done);
        } catch (Exception error) {
            return "refused " + error.getMessage();
        }
    }

    static Element headerOf(Document document) throws WSSecurityException {
        return org.apache.ws.security.util.WSSecurityUtil.getSecurityHeader(document, "");
    }

    static String protect(Document document, String file) throws Exception {
        WSSecHeader header = new WSSecHeader();
        header.insertSecurityHeader(document);
        WSSecTimestamp time = new WSSecTimestamp();
        time.setTimeToLive(120);
        time.build(document, header);
        WSSecUsernameToken token = new WSSecUsernameToken();
        token.setPasswordType(WSConstants.PASSWORD_DIGEST);
        token.setUserInfo(given[4], given[5]);
        token.build(document, header);
        String soap = document.getDocumentElement().getNamespaceURI();
        List<WSEncryptionPart> parts = new ArrayList<>();
        parts.add(new WSEncryptionPart("Body", soap, "Content"));
        parts.add(new WSEncryptionPart("MessageID", "http://www.w3.org/2005/08/addressing", ""));
        parts.add(new WSEncryptionPart("Timestamp", WSConstants.WSU_NS, ""));
        parts.add(new WSEncryptionPart("UsernameToken", WSConstants.WSSE_NS, ""));
        WSSecSignature signature = new WSSecSignature();
        signature.setUserInfo(given[2], given[1]);
        signature.setKeyIdentifierType(WSConstants.BST_DIRECT_REFERENCE);
        signature.setSignatureAlgorithm("http://www.w3.org/2001/04/xmldsig-more#rsa-sha256");
        signature.setDigestAlgo("http://www.w3.org/2001/04/xmlenc#sha256");
        signature.setParts(parts);
        signature.build(document, crypto, header);
        if (given.length > 6) {
            WSSecEncrypt hiding = new WSSecEncrypt();
            hiding.setUserInfo(given[3]);
            hiding.setSymmetricEncAlgorithm(WSConstants.AES_256);
            hiding.setKeyEncAlgo(WSConstants.KEYTRANSPORT_RSAOEP);
            hiding.setParts(Collections.singletonList(new WSEncryptionPart("Body", soap, "Content")));
            hiding.build(document, crypto, header);
        }
        Transformer writer = TransformerFactory.newInstance().newTransformer();
        writer.setOutputProperty(OutputKeys.OMIT_XML_DECLARATION, "yes");
        try (OutputStream out = Files.newOutputStream(Paths.get(file))) {
            writer.transform(new DOMSource(document), new StreamResult(out));
        }
        return "made";
    }

    static Document read(String file) throws Exception {
        DocumentBuilderFactory factory = DocumentBuilderFactory.newInstance();
        factory.setNamespaceAware(true);
        return factory.newDocumentBuilder().parse(new File(file));
    }
}
